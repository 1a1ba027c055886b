// Command goclient uses a running gateway through the Go client libraries of
// OpenAI and Anthropic, as a program of a user would. It knows nothing of the
// gateway's code. GATEWAY_URL (ends in /v1) and GATEWAY_KEY (a workspace key)
// say where to go; it exits with 1 if a check fails.
package main
