// Package remote implements the checks that call a host of the customer, through the guarded
// client of the subject.
package remote
