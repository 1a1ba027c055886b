// Package clients holds programs that use a running gateway through the client libraries
// that people use: the JavaScript libraries of the providers, the AI SDK and LangChain
// (test/*.mjs), a client that is generated from the API document (generated.ts), curl (curl.sh)
// the Go libraries (goclient), and a Terraform provider (goclient/terraform). Its test builds the local gateway, starts it on an empty
// folder and runs them all.
package clients
