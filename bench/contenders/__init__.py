"""The same work done with other means, each as well as those means allow."""
