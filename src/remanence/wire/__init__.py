"""Messages and the formats of the providers: parsing, rendering, pairing of tool calls, validation."""
