"""A small enterprise world that speaks the MORPHEUS HTTP API, for anyone without a server.

`simulation` is the world, `views` and the `*_routes` modules its API, `app` the ASGI application
around it and `transport` the way to reach it inside the process.
"""
