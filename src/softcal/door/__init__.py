"""The one door: what the caller holds becomes checked arrays, or a message that says why not."""
