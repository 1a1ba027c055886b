// Package admission is the first stage of the pipeline: it finds the caller of a request, the
// settings that it is served under, and what the gateway's headers ask for.
package admission
