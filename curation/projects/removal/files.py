"""Files in storage that go with deleted rows."""

from django.core.files.storage import default_storage


def delete_folder(folder: str) -> None:
    """Delete a folder with everything in it; nothing if there is none."""
    folder = folder.rstrip("/")
    try:
        folders, names = default_storage.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        default_storage.delete(f"{folder}/{name}")
    for inner in folders:
        delete_folder(f"{folder}/{inner}")
    default_storage.delete(folder)
