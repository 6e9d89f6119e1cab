"""The broker's messages: ``cms.proto``, and what ``make proto`` generates from it. Only ``wire`` imports them."""
