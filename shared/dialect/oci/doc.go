// Package oci is the wire of Oracle's Generative AI: POST /actions/chat with a
// request inside, of the format COHERE for Cohere's models and GENERIC for all
// others. The compartment and the serving mode come from the credential.
package oci
