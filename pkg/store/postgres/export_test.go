package postgres

// OpenStore is Open for what the interface does not have.
var OpenStore = open

var Dial = dial
