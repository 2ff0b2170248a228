"""What a sweep does next: spaces, samplers, policies, planning. Pure."""
