"""The run kind `gate`: each scenario is proven in a sandbox."""
