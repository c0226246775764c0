"""What several files of tests use: small worlds, policies, slow NumPy forms, processes that start fast."""
