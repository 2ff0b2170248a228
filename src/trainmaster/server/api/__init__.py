"""The table of routes, and what is generated from it: routing, checks of arguments, OpenAPI, TypeScript types."""
