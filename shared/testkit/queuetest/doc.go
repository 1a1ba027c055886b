// Package queuetest is the contract that every queue.Queue passes.
package queuetest
