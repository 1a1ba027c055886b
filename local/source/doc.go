// Package source finds the source tree from which programs are built when they are needed.
package source
