"""Physics engines: the only place that knows their bindings."""
