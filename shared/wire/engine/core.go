//go:build core

package engine

const Linked = false
