// Package blobtest is the contract that every blob.Bucket passes.
package blobtest
