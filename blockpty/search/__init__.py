"""Finding text in everything that was ever shown: a query, an exact scan, and indexes that make the scan short."""
