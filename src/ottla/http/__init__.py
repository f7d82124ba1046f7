"""HTTP for every service: routes as tables, limits, errors, authentication, health and metrics, and an orderly stop."""
