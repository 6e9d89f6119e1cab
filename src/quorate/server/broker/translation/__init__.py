"""Trees (see ``json_trees``) to what the service layer is asked, and its answers to trees.

``actions`` is what many messages share, ``questions`` and ``answers`` are one function per message, ``config`` is the
broker's configuration. Nothing here knows whether a tree came from JSON or protobuf, or where it goes.
"""
