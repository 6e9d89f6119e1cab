"""The broker's messages: ``cms.proto``, and what ``make proto`` generates from it.

``cms_pb2`` are the messages; ``cms_pb2_grpc`` has the stub for clients in Python, our own server parses for itself.
"""
