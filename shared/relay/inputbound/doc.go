// Package inputbound bounds what a request's input may be billed where the bytes of its body
// do not show it: content that a provider has stored or fetches, and the rows of a batch. It
// knows no prices and no budgets.
package inputbound
