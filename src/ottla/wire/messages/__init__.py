"""Every request and response, one API a module; and the data that travels inside them."""
