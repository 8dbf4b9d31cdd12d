// Package console is the operators' pages, under /console: what is stuck, what the provider shows of it now, what an act would do,
// and the act, with its reason.
//
// The promise: it decides nothing. Whatever is shown or done is package operator's, which the command line and the API use, too.
// Each page is whole without JavaScript; with it, pages refresh themselves. Nothing comes from another host and nothing runs that
// is written into a page: the policy of every answer says so to the browser. What customers and providers have written is shown
// as text. An act is a POST from a page of this console, with the session's token in it, and answered with a redirect.
//
// The order of reading: [New] lists the pages; session.go says who is let in; guard.go is what happens to every request; then one
// file for each page.
package console
