// Package entitled decides who may use which agent and which of its skills: one
// function, which cards and calls ask alike.
package entitled
