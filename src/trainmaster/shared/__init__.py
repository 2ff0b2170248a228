"""Plain data that the SDK, the dispatcher and the engines all know."""
