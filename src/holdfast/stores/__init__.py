"""Where durable state is kept: the adapters of the port in `holdfast.store`."""
