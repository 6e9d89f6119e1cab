"""How a controller runs, and where its objects live."""
