"""Model calls: asked, recorded, paid for."""
