"""Views: load, replace, create, list, drop, rename, register."""
