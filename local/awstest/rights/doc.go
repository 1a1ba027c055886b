// Package rights tells what of AWS a function uses, and whether its role lets it.
//
// A Recorder stands before the stand-ins. It knows the function by the access key
// that a request is signed with, makes of each request the actions that IAM
// checks, with their resources and condition keys, and refuses what the function's
// policy does not allow, as AWS does. What was used is kept, so that a test can
// list what a role allows and nothing used.
package rights
