// Package release contains the version of the gateway.
package release

// Version is the version of the last release. It is in the document of the API, in responses
// to health checks and in records of protocols.
const Version = "1.0.0"

// Health is the response to a health check.
const Health = "gateway " + Version + "\n"
