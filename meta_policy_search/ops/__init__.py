"""Pure graph functions: tensors in, tensors or NamedTuples out; no session, feed or logger."""
