// Package release says which version of the gateway this is.
package release
