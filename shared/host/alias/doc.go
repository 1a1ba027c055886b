// Package alias accepts request headers under other prefixes than the gateway's, and
// sends response headers under the prefix that was used.
package alias
