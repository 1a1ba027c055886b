// Package source finds the tree that programs are built from on demand.
package source
