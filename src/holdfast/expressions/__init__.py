"""Expression languages, one module each, plugged into the port `holdfast.expression`."""
