// Package cachetest is the contract that every cache.Neighbours passes.
package cachetest
