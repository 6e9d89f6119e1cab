"""Backing images: data that is kept in several copies, on disks that the same ledger guards.

``view`` gathers what there is of an image, ``choice`` picks disks for further copies, ``copies`` says what a copy is,
and ``controller`` takes one step for each. A copy is a logical volume; filling it from ``spec.sourcePath`` and
verifying its checksum is the agent's part. Starting a volume from an image is nobody's yet.
"""
