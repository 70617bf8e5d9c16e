"""Winnow's command line (`winnow.__main__`). The installed package has the site in its folder `server`."""
