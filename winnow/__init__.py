"""Winnow's command line (`winnow.commands`). The installed package has the site in its folder `server`."""
