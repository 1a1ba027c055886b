// Package alias reads request headers under other prefixes as the gateway's own, and
// answers under the prefix that was used.
package alias
