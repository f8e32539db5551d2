"""The memory as a service over HTTP; needs the extra `server`."""
