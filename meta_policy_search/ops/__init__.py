"""Pure graph functions, the losses among them: tensors in, tensors or NamedTuples out; no session, feed or logger."""
