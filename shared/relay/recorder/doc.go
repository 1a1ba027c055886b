// Package recorder keeps the answers of requests that the gateway makes itself, on
// behalf of somebody.
package recorder
