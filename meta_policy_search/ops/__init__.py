"""Pure graph functions, such as losses: tensors in, tensors out; no session, feed or logger."""
