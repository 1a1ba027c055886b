// Package told makes records of requests that did not pass through the gateway: clients
// tell what they asked and what was answered. Usage is read out of the answer and priced
// as that of a request of our own; it counts against no budget, since nothing was
// admitted.
package told
