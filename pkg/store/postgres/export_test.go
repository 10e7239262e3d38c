package postgres

// OpenStore is Open with the concrete type.
var OpenStore = open

var Dial = dial
