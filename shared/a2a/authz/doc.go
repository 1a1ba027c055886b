// Package authz decides who may use which agent and which of its skills. Cards and calls use
// the same function.
package authz
