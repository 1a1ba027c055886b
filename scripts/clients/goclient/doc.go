// Command goclient uses a running gateway through the Go client libraries of OpenAI and
// Anthropic, as a user's program would. It knows nothing of the gateway's code. GATEWAY_URL
// (ends in /v1) and GATEWAY_KEY (a workspace key) say which gateway to call; goclient exits
// with 1 if a check fails. goclient promlint checks the metrics on its standard input by the rules
// of Prometheus instead.
package main
