"""The studio: pages in the browser. Their source is in `studio/` of the repository; `make studio` builds `built/`."""
