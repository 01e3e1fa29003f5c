"""A third party's plugin for skyfall-crl; its modules are imported only when a run asks for them."""
